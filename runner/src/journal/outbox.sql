-- Results that are to be uploaded to the server of their plan; settled once the server has or rejects them.
CREATE TABLE outbox (
  run TEXT PRIMARY KEY REFERENCES run (id),
  since_ms INTEGER NOT NULL,
  -- Why the last try failed.
  why TEXT,
  settled_ms INTEGER
) STRICT;
CREATE INDEX outbox_due ON outbox (since_ms) WHERE settled_ms IS NULL;
