drop table second;
delete from runs where step = 2;
