package store;

import jakarta.persistence.*;

@Entity
@Table(name = "orders")
public class Order {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "orders")
    @SequenceGenerator(name = "orders", sequenceName = "orders_seq", allocationSize = 50)
    Long id;

    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    Customer customer;

    String item;
    int amount;
}
