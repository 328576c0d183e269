-- Why the run was not scored, or why it can't be compared with others. None of a comparable run.
ALTER TABLE runs ADD COLUMN reason TEXT;
-- The number of Slurm's job, which orders runs of the same time. None if it isn't known.
ALTER TABLE runs ADD COLUMN job BIGINT;
