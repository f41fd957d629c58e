set search_path = pg_catalog;
create table public.second (n int);
insert into public.runs values (2);
select pg_sleep(0.2);
