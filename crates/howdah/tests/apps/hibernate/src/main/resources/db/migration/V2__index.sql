create index orders_by_customer on orders (customer_id);
insert into customer (name, version) select 'customer ' || n, 0 from generate_series(0, 9) n;
