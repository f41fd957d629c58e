package store;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.persistence.LockModeType;
import jakarta.persistence.OptimisticLockException;
import java.io.StringReader;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.flywaydb.core.Flyway;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.StaleStateException;
import org.hibernate.cfg.Configuration;
import org.postgresql.PGConnection;

/** A store as it is written for PostgreSQL itself: Flyway, HikariCP, Hibernate. All that it prints is the same each time. */
public class Main {
    static final int CLIENTS = Integer.parseInt(System.getenv("APP_CLIENTS"));
    static final int ROUNDS = 6;
    static final Map<String, Integer> tally = new TreeMap<>();

    static synchronized void note(String what, int count) {
        tally.merge(what, count, Integer::sum);
    }

    static String url() {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE")
                + "?ApplicationName=store&reWriteBatchedInserts=true";
    }

    public static void main(String[] arguments) throws Exception {
        migrateFourTimesAtOnce();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url());
        config.setUsername(System.getenv("PGUSER"));
        config.setMaximumPoolSize(CLIENTS);
        config.setConnectionTimeout(120_000);
        config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
        try (HikariDataSource pool = new HikariDataSource(config); SessionFactory factory = factory(pool)) {
            all(CLIENTS, me -> work(me, factory, pool));
            report(pool);
        }
        tally.forEach((what, count) -> System.out.println(what + " " + count));
    }

    static SessionFactory factory(HikariDataSource pool) {
        Configuration configuration = new Configuration().addAnnotatedClass(Customer.class).addAnnotatedClass(Order.class);
        configuration.getProperties().put("hibernate.connection.datasource", pool);
        configuration.setProperty("hibernate.jdbc.batch_size", "20");
        configuration.setProperty("hibernate.hbm2ddl.auto", "validate");
        return configuration.buildSessionFactory();
    }

    interface Work {
        void run(int me) throws Exception;
    }

    static void all(int count, Work work) throws InterruptedException {
        CountDownLatch start = new CountDownLatch(1);
        List<Thread> threads = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            int me = n;
            Thread thread = new Thread(() -> {
                try {
                    start.await();
                    work.run(me);
                } catch (Throwable error) {
                    note(error.getClass().getSimpleName() + ": " + error.getMessage(), 1);
                }
            });
            thread.start();
            threads.add(thread);
        }
        start.countDown();
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /** Flyway takes an advisory lock of the session: only one of the four migrates. */
    static void migrateFourTimesAtOnce() throws InterruptedException {
        all(4, me -> {
            Flyway flyway = Flyway.configure()
                    .dataSource(url(), System.getenv("PGUSER"), "")
                    .configuration(Map.of("flyway.postgresql.transactional.lock", "false"))
                    .load();
            note("migrations", flyway.migrate().migrationsExecuted);
        });
    }

    static void work(int me, SessionFactory factory, HikariDataSource pool) throws Exception {
        for (int turn = 0; turn < ROUNDS; turn++) {
            order(me, turn, factory);
            lockAndCount(me, factory);
            optimistic(me, factory);
            isolated(pool);
            inAnotherSchema(me, pool);
            readInPieces(me, pool);
            savepoints(me, turn, pool);
            copy(me, turn, pool);
        }
    }

    static void order(int me, int turn, SessionFactory factory) {
        factory.inTransaction(session -> {
            Customer customer = session.createQuery("from Customer where name = :name", Customer.class)
                    .setParameter("name", "customer " + me % 10).getSingleResult();
            for (int n = 0; n < 10; n++) {
                Order order = new Order();
                order.customer = customer;
                order.item = me + " " + turn + " " + n;
                order.amount = n;
                session.persist(order);
            }
        });
        note("orders", 10);
    }

    static void lockAndCount(int me, SessionFactory factory) {
        factory.inTransaction(session -> {
            Customer customer = session.createQuery("from Customer where name = :name", Customer.class)
                    .setParameter("name", "customer " + me % 10)
                    .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult();
            long orders = session.createQuery("select count(o) from Order o where o.customer = :c", Long.class)
                    .setParameter("c", customer).getSingleResult();
            if (orders < 10) {
                note("too few orders", 1);
            }
        });
    }

    static void optimistic(int me, SessionFactory factory) {
        for (;;) {
            try (Session session = factory.openSession()) {
                session.beginTransaction();
                Customer customer = session.createQuery("from Customer where name = :name", Customer.class)
                        .setParameter("name", "customer " + me % 10).getSingleResult();
                session.lock(customer, LockModeType.OPTIMISTIC_FORCE_INCREMENT);
                session.getTransaction().commit();
                note("versions", 1);
                return;
            } catch (OptimisticLockException | StaleStateException conflict) {
                // Again, as everybody does.
            }
        }
    }

    static String one(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getString(1);
        }
    }

    /** The pool sets these anew for each user of a connection, and back again. */
    static void isolated(HikariDataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setReadOnly(true);
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            connection.setAutoCommit(false);
            check("serializable", one(connection, "show transaction_isolation"));
            check("on", one(connection, "show transaction_read_only"));
            connection.commit();
            check("serializable", one(connection, "show transaction_isolation"));
            connection.commit();
        }
        try (Connection connection = pool.getConnection()) {
            check("read committed", one(connection, "show transaction_isolation"));
            check("off", one(connection, "show transaction_read_only"));
        }
    }

    static void inAnotherSchema(int me, HikariDataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setSchema("archive");
            for (int n = 0; n < 6; n++) {
                // From the fifth time on by a prepared statement of the server's.
                try (PreparedStatement insert =
                        connection.prepareStatement("insert into note (text) values (?)", Statement.RETURN_GENERATED_KEYS)) {
                    insert.setString(1, "by " + me);
                    insert.executeUpdate();
                    ResultSet keys = insert.getGeneratedKeys();
                    note("keys", keys.next() ? 1 : 0);
                }
            }
            connection.setSchema("public");
            check("0", one(connection, "select count(*) from note"));
        }
    }

    static void readInPieces(int me, HikariDataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            try (PreparedStatement select = connection.prepareStatement("select n from generate_series(1, ?) n order by n")) {
                select.setFetchSize(7);
                select.setInt(1, 50 + me);
                ResultSet rows = select.executeQuery();
                int expected = 0;
                while (rows.next()) {
                    expected++;
                    if (rows.getInt(1) != expected) {
                        note("wrong rows", 1);
                    }
                }
                note("rows", expected);
            }
            connection.commit();
        }
    }

    static void savepoints(int me, int turn, HikariDataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            Savepoint savepoint = connection.setSavepoint("one");
            try (Statement statement = connection.createStatement()) {
                statement.execute("set local work_mem = '5MB'");
                statement.execute("select 1/0");
                note("no error", 1);
            } catch (SQLException expected) {
                connection.rollback(savepoint);
            }
            check("4MB", one(connection, "show work_mem"));
            connection.rollback();
        }
    }

    static void copy(int me, int turn, HikariDataSource pool) throws Exception {
        try (Connection connection = pool.getConnection()) {
            PGConnection own = connection.unwrap(PGConnection.class);
            note("copied", (int) own.getCopyAPI().copyIn("copy archive.note (text) from stdin", new StringReader("a\nb\nc\n")));
        }
    }

    static void check(String expected, String found) {
        if (!expected.equals(found)) {
            note("found " + found + " in place of " + expected, 1);
        }
    }

    static void report(HikariDataSource pool) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            for (String sql : List.of(
                    "select count(*) || ' orders, ' || count(distinct id) || ' different' from orders",
                    "select string_agg(version::text, ' ' order by name) from customer",
                    "select count(*) from archive.note",
                    "select count(*) from flyway_schema_history")) {
                System.out.println(one(connection, sql));
            }
        }
    }
}
