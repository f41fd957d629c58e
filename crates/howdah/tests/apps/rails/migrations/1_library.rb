class Library < ActiveRecord::Migration[6.1]
  def change
    reversible do |direction|
      direction.up { execute "create type condition as enum ('new', 'worn', 'lost')" }
      direction.down { execute "drop type condition cascade" }
    end
    create_table :authors do |t|
      t.string :name, null: false, index: { unique: true }
      t.integer :lock_version, null: false, default: 0
      t.integer :books_count, null: false, default: 0
      t.timestamps
    end
    create_table :books do |t|
      t.references :author, null: false, foreign_key: true
      t.string :title, null: false
      t.column :condition, :condition, null: false, default: "new"
      t.jsonb :details, null: false, default: {}
      t.string :tags, array: true, null: false, default: []
      t.timestamps
    end
    create_table(:counters) { |t| t.integer :value, null: false, default: 0 }
  end
end
