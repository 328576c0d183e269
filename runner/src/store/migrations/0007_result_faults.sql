-- What is wrong with the result's file: missing, damaged. None as long as no reader found a fault.
ALTER TABLE runs ADD COLUMN result_fault TEXT;

CREATE INDEX runs_by_result_fault ON runs (result_fault) WHERE result_fault IS NOT NULL;
