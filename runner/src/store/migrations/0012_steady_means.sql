-- The mean seconds per step over all steps after the warm-up. None if the run has too few of them.
ALTER TABLE runs ADD COLUMN steady_mean_s DOUBLE PRECISION;
