-- One execution of a campaign.
CREATE TABLE round (
  id TEXT PRIMARY KEY,
  campaign TEXT NOT NULL,
  cluster TEXT NOT NULL,
  ssh TEXT NOT NULL,
  -- The SHA-256 of the plans, to notice that the campaign was changed.
  sha256 TEXT NOT NULL,
  begun_ms INTEGER NOT NULL,
  -- When the queue last answered.
  seen_ms INTEGER,
  ended_ms INTEGER
) STRICT;

-- The plans of runs; they never change.
CREATE TABLE run (
  id TEXT PRIMARY KEY,
  round TEXT NOT NULL REFERENCES round (id),
  position INTEGER NOT NULL,
  plan TEXT NOT NULL
) STRICT;
CREATE INDEX run_of_round ON run (round, position);

-- The events of runs, in order.
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  run TEXT NOT NULL REFERENCES run (id),
  at_ms INTEGER NOT NULL,
  event TEXT NOT NULL
) STRICT;
CREATE INDEX event_of_run ON event (run, number);

-- How far the log of a job is copied: `kept` bytes of the compressed copy hold the log up to `offset`.
CREATE TABLE tail (
  run TEXT NOT NULL REFERENCES run (id),
  job TEXT NOT NULL,
  path TEXT NOT NULL,
  inode INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  kept INTEGER NOT NULL,
  PRIMARY KEY (run, job)
) STRICT;

-- Requests of other terminals to the process that carries out the run.
CREATE TABLE wish (
  run TEXT PRIMARY KEY REFERENCES run (id),
  cancel INTEGER NOT NULL
) STRICT;
