// A shop in Node that knows nothing of poolers: migrations with their advisory lock, node-postgres with a pool of its own,
// and postgres.js, which sends queries behind one another without waiting.
'use strict';

const path = require('node:path');
const { Readable } = require('node:stream');
const { pipeline } = require('node:stream/promises');
const { setTimeout: sleep } = require('node:timers/promises');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const { from: copyFrom, to: copyTo } = require('pg-copy-streams');
const { runner } = require('node-pg-migrate');
const postgres = require('postgres');

const CLIENTS = Number(process.env.APP_CLIENTS);
const ROUNDS = 6;

const each = (count, work) => Promise.all(Array.from({ length: count }, (_, number) => work(number)));

function must(is, what) {
  if (!is) throw new Error(what);
}

async function fails(promise, code) {
  try {
    await promise;
  } catch (error) {
    must(error.code === code, `${error.code} ${error.message} instead of ${code}`);
    return;
  }
  throw new Error(`nothing failed with ${code}`);
}

/// Several processes' worth of deployments at once: who does not get the lock tries again.
async function migrate(direction, count) {
  const applied = await each(4, async () => {
    const client = new Client();
    await client.connect();
    const options = { dbClient: client, dir: path.join(__dirname, 'migrations'), direction, count };
    for (;;) {
      try {
        const done = await runner({ ...options, migrationsTable: 'migrations', log: () => {} });
        await client.end();
        return done.length;
      } catch (error) {
        must(/already running/.test(error.message), error.stack);
        await sleep(20);
      }
    }
  });
  return applied.reduce((sum, one) => sum + one, 0);
}

async function order(client, worker, round) {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  const reference = `${worker}/${round}`;
  const inserted = await client.query({
    name: 'insert order',
    text: 'insert into orders (worker, reference, tags, details) values ($1, $2, $3, $4) returning id',
    values: [worker, reference, ['new', `w${worker}`], { round, quotes: ['\'', '"', '\\'] }],
  });
  const { id } = inserted.rows[0];
  for (let line = 0; line < 3; line++) {
    await client.query({
      name: 'insert line',
      text: 'insert into lines (order_id, name, price) values ($1, $2, $3)',
      values: [id, `line ${line}`, 1.5 * line],
    });
  }
  await client.query('SAVEPOINT tried');
  await fails(client.query('insert into orders (worker, reference) values ($1, $2)', [worker, reference]), '23505');
  await client.query('ROLLBACK TO SAVEPOINT tried');
  await client.query('update orders set total = (select sum(price) from lines where order_id = $1) where id = $1', [id]);
  await client.query('COMMIT');
  const { rows } = await client.query({
    name: 'read order', text: 'select total, tags, details from orders where id = $1', values: [id],
  });
  must(rows[0].total === '4.50' && rows[0].tags[1] === `w${worker}` && rows[0].details.round === round, 'the order');
}

/// What belongs to this connection alone, and lasts from one statement to the next.
async function state(client, worker, round) {
  const { rows: [{ work_mem: before }] } = await client.query('SHOW work_mem');
  must(before === (round === 0 ? '4MB' : `${1001 + 2 * worker}kB`), `work_mem is ${before}`);
  await client.query(`SET work_mem = '${1001 + 2 * worker}kB'`);
  await client.query('select set_config($1, $2, false)', ['shop.worker', String(worker)]);
  await client.query('CREATE TEMPORARY TABLE basket (n int)');
  await client.query('insert into basket select generate_series(1, $1)', [worker + 1]);
  await sleep(1);
  const { rows: [found] } = await client.query(
    "select count(*)::int as count, current_setting('shop.worker') as worker from basket");
  must(found.count === worker + 1 && found.worker === String(worker), 'what is in the basket');
  await client.query('DROP TABLE basket');
}

/// An increment that only the lock keeps whole.
async function locked(client) {
  await client.query('select pg_advisory_lock(7)');
  const { rows } = await client.query("select value from counters where name = 'locked'");
  await client.query("update counters set value = $1 where name = 'locked'", [rows[0].value + 1]);
  await client.query('select pg_advisory_unlock(7)');
}

async function streams(client, worker) {
  await client.query('BEGIN');
  const cursor = client.query(new Cursor('select n from generate_series(1, $1) n', [25]));
  let sum = 0;
  for (let rows = await cursor.read(10); rows.length > 0; rows = await cursor.read(10)) {
    rows.forEach((row) => { sum += row.n; });
  }
  await cursor.close();
  must(sum === 325, `the cursor's sum is ${sum}`);
  await client.query('create temporary table copied (n int, v text) on commit drop');
  const lines = Array.from({ length: 100 }, (_, n) => `${n}\t${'v'.repeat(n)}\n`);
  await pipeline(Readable.from(lines), client.query(copyFrom('copy copied from stdin')));
  let bytes = 0;
  await pipeline(client.query(copyTo('copy copied to stdout')), async (chunks) => {
    for await (const chunk of chunks) bytes += chunk.length;
  });
  must(bytes === lines.join('').length, `${bytes} bytes were copied by ${worker}`);
  await client.query('COMMIT');
}

async function nodePostgres() {
  const options = { max: CLIENTS + 5, statement_timeout: 60000, lock_timeout: 50000, options: '-c search_path=shop,public' };
  const pool = new Pool({ ...options, application_name: 'node' });
  const listener = await pool.connect();
  const heard = new Set();
  let extra = 0;
  listener.on('notification', ({ payload }) => (heard.has(payload) ? extra++ : heard.add(payload)));
  await listener.query('LISTEN orders');
  await each(CLIENTS - 1, async (worker) => {
    const client = await pool.connect();
    for (let round = 0; round < ROUNDS; round++) {
      await order(client, worker, round);
      await state(client, worker, round);
      await locked(client);
      await fails(client.query('select 1 / $1::int', [0]), '22012');
      await fails(client.query('BEGIN; select 1 / 0; COMMIT'), '22012');
      await client.query('ROLLBACK');
      if (round % 3 === 0) await streams(client, worker);
      await client.query('select pg_notify($1, $2)', ['orders', `${worker}/${round}`]);
      await pool.query('select 1').catch((error) => must(false, error.stack));
    }
    const { rows } = await client.query('select 1 as one; select 2 as two').then(([, second]) => second);
    must(rows[0].two === 2, 'the second result');
    client.release();
  });
  while (heard.size < (CLIENTS - 1) * ROUNDS) await sleep(5);
  const { rows: [sums] } = await pool.query(
    `select (select count(*)::int from orders) as orders, (select sum(price)::text from lines) as prices,
       (select value from counters where name = 'locked') as locked`);
  console.log('node-postgres', JSON.stringify(sums), 'heard', heard.size, 'twice', extra);
  listener.release();
  await pool.end();
}

async function postgresJs() {
  const connection = { application_name: 'postgres.js', search_path: 'shop,public', statement_timeout: 60000 };
  const sql = postgres({ max: CLIENTS, onnotice: () => {}, connection });
  const heard = [];
  await sql.listen('counted', (payload) => heard.push(payload));
  // Many more than there are connections: they stand behind one another in each.
  const numbers = await each(CLIENTS * 40, async (n) => {
    if (n % 97 === 0) {
      await fails(sql`select ${n}::int / 0`, '22012');
      return n;
    }
    const [row] = n % 2 ? await sql`select ${n}::int as n` : await sql`select ${n}::int as n, ${'x'.repeat(n)} as v`;
    return row.n;
  });
  must(numbers.every((n, at) => n === at), 'every query has had its own answer');
  await each(CLIENTS, async (worker) => {
    await sql.begin('isolation level read committed', async (tx) => {
      const [{ value }] = await tx`select value from counters where name = 'mine' for update`;
      await tx.savepoint((inner) => inner`insert into counters values ('mine', 0)`).then(
        () => must(false, 'it is there twice'), (error) => must(error.code === '23505', error.stack));
      await tx`update counters set value = ${value + 1} where name = 'mine'`;
      await tx`select pg_notify('counted', ${String(value + 1)})`;
    });
    let count = 0;
    await sql`select n from generate_series(1, 50) n`.cursor(7, (rows) => { count += rows.length; });
    must(count === 50, `the cursor gave ${count}`);
    if (worker < 10) {
      const own = await sql.reserve();
      await own`select pg_advisory_lock(8)`;
      await own.unsafe(`set work_mem = '${2001 + 2 * worker}kB'`);
      const [[{ work_mem: has }]] = await Promise.all([own`show work_mem`, own`select 1`, own`select 2`]);
      must(has === `${2001 + 2 * worker}kB`, `work_mem is ${has}`);
      await own`select pg_advisory_unlock(8)`;
      await own.unsafe('reset work_mem');
      own.release();
    }
  });
  const [{ value }] = await sql`select value from counters where name = 'mine'`;
  while (heard.length < CLIENTS) await sleep(5);
  heard.sort((a, b) => a - b);
  must(heard.every((payload, at) => Number(payload) === at + 1), 'each number was heard once');
  console.log('postgres.js counted', value, 'heard', heard.length);
  await sql.end();
}

async function main() {
  console.log('up', await migrate('up', Infinity));
  console.log('down', await migrate('down', 2) > 0);
  console.log('up', await migrate('up', Infinity));
  await nodePostgres();
  await postgresJs();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
