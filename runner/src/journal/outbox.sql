-- Results that are to be sent to the server that their plan names: each until the server has it, or says that it never will.
CREATE TABLE outbox (
  run TEXT PRIMARY KEY REFERENCES run (id),
  since_ms INTEGER NOT NULL,
  -- Why it could not be sent, as that was last written down.
  why TEXT,
  settled_ms INTEGER
) STRICT;
CREATE INDEX outbox_due ON outbox (since_ms) WHERE settled_ms IS NULL;
