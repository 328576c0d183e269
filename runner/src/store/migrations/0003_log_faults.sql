-- What is wrong with the raw log: missing, damaged. None as long as no check found a fault.
ALTER TABLE runs ADD COLUMN log_fault TEXT;
-- When a check last found the raw log sound.
ALTER TABLE runs ADD COLUMN log_checked_at TEXT;

CREATE INDEX runs_by_log_fault ON runs (log_fault, log_sha256) WHERE log_fault IS NOT NULL;
