-- What is wrong with the file of the newest score: damaged. None as long as no reader found a fault.
ALTER TABLE runs ADD COLUMN score_fault TEXT;

CREATE INDEX runs_by_score_fault ON runs (score_fault) WHERE score_fault IS NOT NULL;
