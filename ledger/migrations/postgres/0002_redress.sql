ALTER TABLE rank_lost ADD COLUMN state smallint NOT NULL DEFAULT 0;
ALTER TABLE rank_lost ADD COLUMN reason text COLLATE "C";
ALTER TABLE rank_lost ADD COLUMN now_score double precision;
ALTER TABLE rank_lost ADD COLUMN posted_at bigint;
CREATE INDEX rank_lost_state ON rank_lost (state, board, run, seq);
CREATE INDEX rank_board_at ON rank_board (at, board, run);
INSERT INTO rank_offset (topic, part, next) VALUES ('', 0, 0) ON CONFLICT DO NOTHING;
