# A library on ActiveRecord that knows nothing of poolers: migrations under their advisory lock, prepared statements, settings of
# the connection, locks of both kinds, savepoints, batches, and LISTEN as ActionCable does it.
require "active_record"
require "set"

CLIENTS = Integer(ENV.fetch("APP_CLIENTS"))
ROUNDS = 6
CONFIG = {
  adapter: "postgresql",
  host: ENV.fetch("PGHOST"),
  port: ENV.fetch("PGPORT"),
  username: ENV.fetch("PGUSER"),
  database: ENV.fetch("PGDATABASE"),
  pool: CLIENTS + 2,
  checkout_timeout: 60,
  min_messages: "warning",
  schema_search_path: "public",
  variables: { statement_timeout: 60_000, lock_timeout: "50s", random_page_cost: 1.5 },
}.freeze

def must(is, what)
  raise what unless is
end

def each_thread(count)
  threads = Array.new(count) do |number|
    Thread.new do
      Thread.current.report_on_exception = false
      yield number
    end
  end
  threads.map(&:value)
end

class Author < ActiveRecord::Base
  has_many :books
end

class Book < ActiveRecord::Base
  belongs_to :author, counter_cache: true
  enum condition: { new: "new", worn: "worn", lost: "lost" }, _prefix: true
end

class Counter < ActiveRecord::Base
end

# Whoever does not get the lock tries again; and who made the table of migrations at the same moment, before the lock.
def migrate(version = nil)
  ActiveRecord::Migration.suppress_messages do
    directory = File.join(__dir__, "migrations")
    ActiveRecord::MigrationContext.new(directory, ActiveRecord::SchemaMigration).migrate(version)
  end
rescue ActiveRecord::ConcurrentMigrationError, ActiveRecord::RecordNotUnique
  sleep 0.02
  retry
end

# Deployments are processes of their own.
def deploy(processes, version = nil)
  pids = Array.new(processes) do
    fork do
      ActiveRecord::Base.establish_connection(CONFIG)
      ActiveRecord::Migration.verbose = false
      migrate(version)
      ActiveRecord::Base.clear_all_connections!
      exit!(0)
    rescue Exception => error
      warn error.full_message
      exit!(1)
    end
  end
  pids.all? { |pid| Process.wait2(pid)[1].success? }
end

def lend(worker, round)
  author = Author.create!(name: "author #{worker}/#{round}")
  Author.transaction do
    3.times { |n| author.books.create!(title: "title #{n}", tags: ["a", "b,\"c"], details: { n: n, deep: [worker] }) }
    begin
      Author.transaction(requires_new: true) { Author.create!(name: author.name) }
      must(false, "the name is there twice")
    rescue ActiveRecord::RecordNotUnique
      must(author.books.count == 3, "the savepoint has kept what was before")
    end
  end
  stale = Author.find(author.id)
  author.reload.update!(updated_at: Time.now)
  begin
    stale.update!(name: "late")
    must(false, "nobody has noticed that it is stale")
  rescue ActiveRecord::StaleObjectError
    stale.reload
  end
  stale.with_lock { stale.books.condition_new.first.condition_lost! }
  must(stale.books.where(condition: "lost").pluck(:title).size == 1, "one book is lost")
  must(stale.reload.books_count == 3, "they are counted")
  found = Book.where("details @> ?", { deep: [worker] }.to_json).where(author_id: author.id).order(:id).to_a
  must(found.map { |book| book.details["n"] } == [0, 1, 2] && found[0].tags[1] == "b,\"c", "what a book is")
end

# What belongs to this connection alone.
def state(connection, worker, round)
  must(connection.select_value("SHOW random_page_cost") == "1.5", "what the connection began with")
  before = connection.select_value("SHOW work_mem")
  must(before == (round.zero? ? "4MB" : "#{1001 + 2 * worker}kB"), "work_mem is #{before}")
  connection.execute("SET work_mem = '#{1001 + 2 * worker}kB'")
  connection.create_table(:basket, temporary: true, force: true) { |t| t.integer :n }
  connection.exec_insert_all("insert into basket (n) select generate_series(1, #{worker + 1})", "basket")
  sleep 0.001
  must(connection.select_value("select count(*) from basket") == worker + 1, "what is in the basket")
  connection.drop_table(:basket)
  connection.transaction { connection.execute("SET LOCAL statement_timeout = 1") }
  must(connection.select_value("SHOW statement_timeout") == "1min", "what was local")
end

# Increments that only the locks keep whole.
def count(connection, first, second)
  connection.execute("select pg_advisory_lock(7)") unless connection.get_advisory_lock(7)
  first.reload.update_columns(value: first.value + 1)
  must(connection.release_advisory_lock(7), "it was ours")
  second.with_lock { second.update!(value: second.value + 1) }
end

def batches(worker)
  now = Time.now
  rows = Array.new(40) { |n| { name: "bulk #{worker}/#{n}", created_at: now, updated_at: now } }
  Author.insert_all!(rows)
  Author.upsert_all(rows.map { |row| row.merge(lock_version: 1) }, unique_by: :name)
  bulk = Author.where("name like ?", "bulk #{worker}/%")
  sum = 0
  bulk.find_each(batch_size: 7) { |author| sum += author.lock_version }
  must(sum == 40, "found #{sum} in batches")
  bulk.in_batches(of: 11).update_all(lock_version: 0)
  must(bulk.sum(:lock_version).zero? && bulk.delete_all == 40, "they are gone")
end

# As ActionCable's adapter listens: a thread with a connection of its own.
def listener(expected)
  ready = Queue.new
  thread = Thread.new do
    heard = Hash.new(0)
    ActiveRecord::Base.connection_pool.with_connection do |connection|
      raw = connection.raw_connection
      raw.async_exec("LISTEN lent")
      ready << true
      while heard.size < expected
        raw.wait_for_notify(1) { |_, _, payload| heard[payload] += 1 }
      end
      raw.async_exec("UNLISTEN lent")
    end
    heard
  end
  ready.pop
  thread
end

# A column that appears under prepared statements: ActiveRecord prepares them anew, once it is told that they are stale.
def alter(connection)
  each_thread(10) do
    ActiveRecord::Base.connection_pool.with_connection { 5.times { Author.find_by(name: "author 0/0") } }
  end
  connection.add_column(:authors, :born_on, :date)
  found = each_thread(10) do
    ActiveRecord::Base.connection_pool.with_connection { Author.find_by(name: "author 0/0").name }
  end
  must(found.uniq == ["author 0/0"], "found #{found}")
end

def work(worker)
  ActiveRecord::Base.connection_pool.with_connection do |connection|
    first, second = Counter.order(:id).to_a
    ROUNDS.times do |round|
      lend(worker, round)
      state(connection, worker, round)
      count(connection, first, second)
      begin
        connection.exec_query("select 1 / $1::int", "zero", [0])
        must(false, "one can divide by zero")
      rescue ActiveRecord::StatementInvalid => error
        must(error.cause.is_a?(PG::DivisionByZero), error.full_message)
      end
      connection.execute("NOTIFY lent, '#{worker}/#{round}'")
    end
    batches(worker)
  end
end

puts "migrated #{deploy(4)}"
puts "back #{deploy(1, 0)}"
puts "migrated again #{deploy(4)}"
ActiveRecord::Base.establish_connection(CONFIG)
heard = listener(CLIENTS * ROUNDS)
each_thread(CLIENTS) { |worker| work(worker) }
heard = heard.value
puts "authors #{Author.count} books #{Book.count} counted #{Counter.order(:id).pluck(:value).join(" ")}"
puts "heard #{heard.size} twice #{heard.values.count { |times| times > 1 }}"
alter(ActiveRecord::Base.connection)
ActiveRecord::Base.clear_all_connections!
puts "done"
