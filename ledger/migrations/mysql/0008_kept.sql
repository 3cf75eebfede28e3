-- How many rows of rank_final a final has. NULL: of an earlier program, which kept the first 1,000.
ALTER TABLE rank_final_board ADD COLUMN kept bigint, ADD KEY rank_final_board_end (end_at, board);
