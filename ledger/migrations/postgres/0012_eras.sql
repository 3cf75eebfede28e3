-- On which servers a run was found, in which partition its board is, and which servers writers named last there.
ALTER TABLE rank_board ADD COLUMN eras text NOT NULL DEFAULT '';
ALTER TABLE rank_board ADD COLUMN part int NOT NULL DEFAULT -1;
ALTER TABLE rank_offset ADD COLUMN eras text NOT NULL DEFAULT '';
CREATE INDEX rank_board_part ON rank_board (part);
