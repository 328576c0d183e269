-- How the run ended before its last step: failed, hung or stopped. None of a complete run, and of one whose log doesn't say.
ALTER TABLE runs ADD COLUMN ending TEXT;
