-- On which servers a run was found, in which partition its board is, and which servers writers named last there.
ALTER TABLE rank_board ADD COLUMN eras varchar(500) NOT NULL DEFAULT '', ADD COLUMN part int NOT NULL DEFAULT -1, ADD KEY rank_board_part (part);
ALTER TABLE rank_offset ADD COLUMN eras varchar(4000) NOT NULL DEFAULT '';
