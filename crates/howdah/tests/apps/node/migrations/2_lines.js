'use strict';

exports.up = (pgm) => {
  pgm.createTable({ schema: 'shop', name: 'lines' }, {
    id: 'id',
    order_id: { type: 'int', notNull: true, references: { schema: 'shop', name: 'orders' } },
    name: { type: 'text', notNull: true },
    price: { type: 'numeric(10,2)', notNull: true },
  });
  pgm.createIndex({ schema: 'shop', name: 'lines' }, 'order_id');
  pgm.sql("insert into shop.counters values ('locked', 0), ('mine', 0)");
};

exports.down = (pgm) => {
  pgm.dropTable({ schema: 'shop', name: 'lines' });
  pgm.sql('delete from shop.counters');
};
