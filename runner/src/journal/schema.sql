-- One carrying out of a campaign.
CREATE TABLE round (
  id TEXT PRIMARY KEY,
  campaign TEXT NOT NULL,
  cluster TEXT NOT NULL,
  ssh TEXT NOT NULL,
  -- The SHA-256 of what was planned, so that a changed campaign is noticed.
  sha256 TEXT NOT NULL,
  begun_ms INTEGER NOT NULL,
  -- When the cluster last told how its jobs are.
  seen_ms INTEGER,
  ended_ms INTEGER
) STRICT;

-- What is planned of a run, for ever.
CREATE TABLE run (
  id TEXT PRIMARY KEY,
  round TEXT NOT NULL REFERENCES round (id),
  position INTEGER NOT NULL,
  plan TEXT NOT NULL
) STRICT;
CREATE INDEX run_of_round ON run (round, position);

-- What happened to it, in order.
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run TEXT NOT NULL REFERENCES run (id),
  at_ms INTEGER NOT NULL,
  event TEXT NOT NULL
) STRICT;
CREATE INDEX event_of_run ON event (run, number);

-- How far the log of a job is copied: `kept` bytes of the compressed copy are whole, and hold what the log has before `offset`.
CREATE TABLE tail (
  run TEXT NOT NULL REFERENCES run (id),
  job TEXT NOT NULL,
  path TEXT NOT NULL,
  inode INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  PRIMARY KEY (run, job)
) STRICT;

-- What another terminal wants of the process that carries the run out.
CREATE TABLE wish (
  run TEXT PRIMARY KEY REFERENCES run (id),
  cancel INTEGER NOT NULL
) STRICT;
