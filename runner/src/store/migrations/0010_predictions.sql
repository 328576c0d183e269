-- The step time that is predicted for the run's scenario. None of a run with a plan, which plan_* hold.
ALTER TABLE runs ADD COLUMN prediction_low_s  DOUBLE PRECISION;
ALTER TABLE runs ADD COLUMN prediction_mid_s  DOUBLE PRECISION;
ALTER TABLE runs ADD COLUMN prediction_high_s DOUBLE PRECISION;
-- By how much a step took longer than planned, or else than predicted, as a fraction.
ALTER TABLE runs ADD COLUMN prediction_error  DOUBLE PRECISION;

CREATE INDEX runs_by_prediction_error ON runs (prediction_error, id);
