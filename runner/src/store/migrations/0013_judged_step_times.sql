-- The seconds per step by which the run is judged, as lists show it: those of the scored steps, or the steady mean where few are
-- scored. The errors and the speed follow from it from now on. Rows of older programs are computed again.
ALTER TABLE runs ADD COLUMN judged_s DOUBLE PRECISION;
UPDATE runs SET judged_s = CASE WHEN step_time_n < 5 AND steady_mean_s IS NOT NULL THEN steady_mean_s ELSE step_time_s END
    WHERE step_time_s IS NOT NULL;

DROP INDEX runs_by_step_time;
CREATE INDEX runs_by_step_time ON runs (judged_s, id);
