class Titles < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def up
    add_index :books, :title, algorithm: :concurrently
    execute "insert into counters (value) values (0), (0)"
  end

  def down
    execute "truncate counters restart identity"
    remove_index :books, :title, algorithm: :concurrently
  end
end
