-- What lists show of a run. All of it follows from the result and can be made again by a newer program.
CREATE TABLE runs (
    id                   TEXT PRIMARY KEY,
    received_at          TEXT NOT NULL, -- RFC 3339 in UTC with microseconds: sorts as time does
    sha256               TEXT NOT NULL, -- of the result file's bytes
    log_sha256           TEXT,          -- names the raw log among the blobs, where it is there
    path                 TEXT NOT NULL,
    campaign             TEXT,
    run                  TEXT,
    repeat               BIGINT,
    cluster              TEXT,
    recipe               TEXT,
    model                TEXT,
    gpu                  TEXT,
    gpus                 BIGINT,
    dtype                TEXT,
    status               TEXT NOT NULL,
    step_time_s          DOUBLE PRECISION,
    step_time_std_s      DOUBLE PRECISION,
    step_time_std_kind   TEXT,
    step_time_n          BIGINT,
    tokens_per_s         DOUBLE PRECISION,
    mfu                  DOUBLE PRECISION,
    convention           TEXT,
    baseline_step_time_s DOUBLE PRECISION,
    speed_percent        DOUBLE PRECISION,
    plan_low_s           DOUBLE PRECISION,
    plan_mid_s           DOUBLE PRECISION,
    plan_high_s          DOUBLE PRECISION,
    plan_error           DOUBLE PRECISION,
    comparable           BOOLEAN NOT NULL,
    parser_version       BIGINT NOT NULL
);

-- The result file of each run, compressed by zstd: apart, so that lists never read it.
CREATE TABLE results (
    id   TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    file BLOB NOT NULL
);

CREATE INDEX runs_by_time     ON runs (received_at, id);
CREATE INDEX runs_by_recipe   ON runs (recipe, received_at, id);
CREATE INDEX runs_by_cluster  ON runs (cluster, received_at, id);
CREATE INDEX runs_by_campaign ON runs (campaign, received_at, id);
