create table runs (step int primary key);
insert into runs values (1);
