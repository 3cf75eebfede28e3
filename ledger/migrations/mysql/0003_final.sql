DROP TABLE IF EXISTS rank_final;
CREATE TABLE IF NOT EXISTS rank_final (
  board  varbinary(200) NOT NULL,
  place  bigint NOT NULL,
  member varbinary(128) NOT NULL,
  score  double NOT NULL,
  end_at bigint NOT NULL,
  PRIMARY KEY (board, place),
  KEY rank_final_member (member, end_at, board)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_final_board (
  board    varbinary(200) NOT NULL PRIMARY KEY,
  class    varbinary(40) NOT NULL,
  dims     blob NOT NULL,
  tag      varbinary(40) NOT NULL,
  start_at bigint NOT NULL,
  end_at   bigint NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  sum      bigint NOT NULL,
  members  bigint NOT NULL,
  integers smallint NOT NULL,
  file     blob NOT NULL,
  made_at  bigint NOT NULL,
  KEY rank_final_board_class (class, tag, board)
) ENGINE=InnoDB;
