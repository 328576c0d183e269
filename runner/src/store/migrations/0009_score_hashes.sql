-- The SHA-256 of the file, as it is stored. None for scores that older programs stored.
ALTER TABLE scores ADD COLUMN sha256 TEXT;
