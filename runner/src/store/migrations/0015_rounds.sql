-- The number of the campaign's round. None if an older program launched the run.
ALTER TABLE runs ADD COLUMN round BIGINT;
