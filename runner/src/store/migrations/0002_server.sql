-- What a server for many adds. BLOB and SEQUENCE are words that migrations/mod.rs puts each database's own for.

-- A boolean is no type that both databases have alike.
ALTER TABLE runs ADD COLUMN is_comparable BIGINT NOT NULL DEFAULT 0;
UPDATE runs SET is_comparable = CASE WHEN comparable THEN 1 ELSE 0 END;
ALTER TABLE runs DROP COLUMN comparable;

-- When the run ran.
ALTER TABLE runs ADD COLUMN ran_at TEXT NOT NULL DEFAULT '';
UPDATE runs SET ran_at = received_at;
-- What the run is one of: the query of a link to its scenario. Runs of the same line and cluster make a history.
ALTER TABLE runs ADD COLUMN line TEXT;
-- The program's way of making summaries when this one was made: an older one is made again.
ALTER TABLE runs ADD COLUMN summary_version BIGINT NOT NULL DEFAULT 1;
-- The token that uploaded it.
ALTER TABLE runs ADD COLUMN token TEXT;

CREATE INDEX runs_by_line      ON runs (line, ran_at, id);
CREATE INDEX runs_by_run_time  ON runs (ran_at, id);
CREATE INDEX runs_by_step_time ON runs (step_time_s, id);
CREATE INDEX runs_by_mfu       ON runs (mfu, id);
CREATE INDEX runs_by_speed     ON runs (speed_percent, id);
CREATE INDEX runs_by_tokens    ON runs (tokens_per_s, id);
CREATE INDEX runs_by_error     ON runs (plan_error, id);
CREATE INDEX runs_by_log       ON runs (log_sha256);
CREATE INDEX runs_by_summary   ON runs (summary_version);

-- Results made again from raw logs by newer parsers, compressed by zstd; what was uploaded stays in results.
CREATE TABLE scores (
    id             TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    parser_version BIGINT NOT NULL,
    scored_at      TEXT NOT NULL,
    file           BLOB NOT NULL,
    PRIMARY KEY (id, parser_version)
);

-- Where runs are that are not over yet, as they last said.
CREATE TABLE progress (
    id          TEXT PRIMARY KEY,
    received_at TEXT NOT NULL,
    body        TEXT NOT NULL -- JSON
);

-- What happened, for whoever watches; old rows go.
CREATE TABLE changes (
    seq  SEQUENCE,
    at   TEXT NOT NULL,
    kind TEXT NOT NULL, -- run, progress, deleted, alert
    id   TEXT NOT NULL
);

CREATE TABLE tokens (
    id             TEXT PRIMARY KEY,
    name           TEXT NOT NULL,
    sha256         TEXT NOT NULL UNIQUE, -- of the token, which nobody has but its owner
    scope          TEXT NOT NULL,        -- read, upload, admin
    created_at     TEXT NOT NULL,
    expires_at     TEXT,
    revoked_at     TEXT,
    last_used_at   TEXT,                 -- to the minute
    quota_bytes    BIGINT                -- a day; none is the server's own
);

-- Bytes that a token uploaded in a day.
CREATE TABLE uploaded (
    token TEXT NOT NULL,
    day   TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (token, day)
);

CREATE TABLE shares (
    id         TEXT PRIMARY KEY,
    sha256     TEXT NOT NULL UNIQUE,
    runs       TEXT NOT NULL, -- ids, separated by commas
    created_by TEXT NOT NULL, -- the id of a token
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
);

-- Runs that were uploaded or carried out from here, until it was looked whether they are slower than they should be.
CREATE TABLE unjudged (
    id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE
);

-- Runs that were slower than they should have been, by a rule.
CREATE TABLE alerts (
    id   TEXT PRIMARY KEY,
    at   TEXT NOT NULL,
    run  TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    UNIQUE (run, kind)
);

-- Alerts that are still to be told to an address.
CREATE TABLE deliveries (
    alert TEXT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    url   TEXT NOT NULL,
    tries BIGINT NOT NULL DEFAULT 0,
    due   TEXT NOT NULL,
    PRIMARY KEY (alert, url)
);

CREATE INDEX alerts_by_time ON alerts (at, id);
