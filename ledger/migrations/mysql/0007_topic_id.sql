-- The id of the topic that an offset is of: another one if the topic was deleted and made again. Empty: not known yet.
ALTER TABLE rank_offset ADD COLUMN topic_id varbinary(64) NOT NULL DEFAULT '';
