'use strict';

exports.up = (pgm) => {
  pgm.createSchema('shop');
  pgm.createTable({ schema: 'shop', name: 'orders' }, {
    id: 'id',
    worker: { type: 'int', notNull: true },
    reference: { type: 'text', notNull: true, unique: true },
    total: { type: 'numeric(10,2)', notNull: true, default: 0 },
    tags: { type: 'text[]', notNull: true, default: '{}' },
    details: { type: 'jsonb' },
  });
  pgm.createTable({ schema: 'shop', name: 'counters' }, {
    name: { type: 'text', primaryKey: true },
    value: { type: 'int', notNull: true },
  });
};

exports.down = (pgm) => {
  pgm.dropSchema('shop', { cascade: true });
};
