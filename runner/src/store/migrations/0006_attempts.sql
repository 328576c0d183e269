-- Which attempt at a campaign's run it is, and how many the campaign allows. None where it allows no retries.
ALTER TABLE runs ADD COLUMN attempt  BIGINT;
ALTER TABLE runs ADD COLUMN attempts BIGINT;
