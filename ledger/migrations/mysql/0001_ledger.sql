CREATE TABLE IF NOT EXISTS rank_log (
  board    varbinary(200) NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  member   varbinary(128) NOT NULL,
  order_id varbinary(128),
  op       varbinary(8) NOT NULL,
  delta    double,
  score    double,
  sum      bigint,
  members  bigint NOT NULL,
  at       bigint NOT NULL,
  PRIMARY KEY (board, run, seq),
  UNIQUE KEY rank_log_order (board, member, order_id, op)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_lost (
  id       bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
  board    varbinary(200) NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  member   varbinary(128) NOT NULL,
  order_id varbinary(128),
  op       varbinary(8) NOT NULL,
  delta    double,
  score    double,
  sum      bigint,
  members  bigint NOT NULL,
  at       bigint NOT NULL,
  lost_at  bigint NOT NULL,
  redressed_seq bigint,
  KEY rank_lost_board (board, member, order_id)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_score (
  board  varbinary(200) NOT NULL,
  member varbinary(128) NOT NULL,
  run    bigint NOT NULL,
  seq    bigint NOT NULL,
  score  double,
  PRIMARY KEY (board, member)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_board (
  board      varbinary(200) NOT NULL,
  run        bigint NOT NULL,
  class      varbinary(40) NOT NULL,
  dims       blob NOT NULL,
  tag        varbinary(40) NOT NULL,
  state      smallint NOT NULL DEFAULT 0,
  base_run   bigint NOT NULL,
  begin_seq  bigint NOT NULL,
  first_seq  bigint NOT NULL,
  seq        bigint NOT NULL,
  sum        bigint,
  members    bigint NOT NULL,
  at         bigint NOT NULL,
  incomplete smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (board, run),
  KEY rank_board_class (class, tag)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_final (
  board  varbinary(200) NOT NULL,
  place  bigint NOT NULL,
  member varbinary(128) NOT NULL,
  score  double NOT NULL,
  PRIMARY KEY (board, place),
  KEY rank_final_member (member, board)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_offset (
  topic varbinary(249) NOT NULL,
  part  int NOT NULL,
  next  bigint NOT NULL,
  PRIMARY KEY (topic, part)
) ENGINE=InnoDB;
CREATE TABLE IF NOT EXISTS rank_bad (
  topic  varbinary(249) NOT NULL,
  part   int NOT NULL,
  record bigint NOT NULL,
  reason varbinary(16) NOT NULL,
  value  mediumblob NOT NULL,
  PRIMARY KEY (topic, part, record)
) ENGINE=InnoDB;
