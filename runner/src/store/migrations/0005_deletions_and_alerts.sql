-- Runs that were deleted, so that an upload does not bring them back.
CREATE TABLE deletions (
    id         TEXT PRIMARY KEY,
    deleted_at TEXT NOT NULL
);

-- What an address is told: one message for all alerts of a run. None in rows of older versions, which tell the alert itself.
ALTER TABLE deliveries ADD COLUMN body TEXT;

-- Who acknowledged an alert, when and why.
ALTER TABLE alerts ADD COLUMN acknowledged_at TEXT;
ALTER TABLE alerts ADD COLUMN acknowledged_by TEXT;
ALTER TABLE alerts ADD COLUMN reason TEXT;
