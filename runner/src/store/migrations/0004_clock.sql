-- The clock as the servers saw it: old runs are deleted only after it ran without a jump for a while.
CREATE TABLE clock (
    id           BIGINT PRIMARY KEY, -- 1: there is one row
    seen_at      TEXT NOT NULL,
    steady_since TEXT NOT NULL
);
