drop table runs;
