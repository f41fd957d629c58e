//! docs/metrics.md: what an operator has to know, and the table as text.

use std::fmt::Write as _;

use crate::family::{Kind, LABEL_BYTES_MAX, SERIES_MAX};
use crate::table::METRICS;

/// The document.
pub fn manual() -> String {
    let mut text = HEAD.replace("SERIES_MAX", &SERIES_MAX.to_string());
    text = text.replace("LABEL_BYTES_MAX", &LABEL_BYTES_MAX.to_string());
    text.push_str("| name | kind | labels | what |\n|---|---|---|---|\n");
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let name = metric.full_name();
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {} |", metric.help);
    }
    text
}

const HEAD: &str = "<!-- Made by `cargo xtask gen-docs` from crates/metrics. -->
# Metrics

`health_listen` is the address of an HTTP endpoint; `/metrics` there is what Prometheus, and whatever reads its format, asks for.

```ini
[pgbouncer]
health_listen = 127.0.0.1:8009
```

```yaml
scrape_configs:
  - job_name: howdah
    static_configs: [{targets: ['10.0.1.1:8009', '10.0.1.2:8009']}]
```

- **Formats.** OpenMetrics 1.0 for who accepts `application/openmetrics-text`, and the older text format 0.0.4 for all others.
- **Who may ask.** Whoever reaches the address: there is no password, as for the rest of this endpoint. It tells names of databases, users and
  hosts, and never a statement's text, a client's address or an application's name. Bind it to an address that only the monitoring reaches.
- **What it costs.** Nothing is counted for it: workers count for the console in any case, and a scrape reads that. It is made
  on a thread of its own; no worker waits for it, and no session is looked at. What is not older than 100 ms is told again.
- **Limits.** 64 connections, 5 s for each, 8 KB of request. A metric has SERIES_MAX values at most, the rest is counted in
  `howdah_series_left_out`; a label has LABEL_BYTES_MAX bytes. Labels are names from your settings, users that have logged in, and fixed words.
- **Pools that go.** Counters belong to a pool: database entry, user, and for reads the standby that its servers are on. With the pool its values
  end, so add up with `sum by (database) (rate(...))`, never the other way round.

Worth an alarm:

| what | expression |
|---|---|
| clients wait | `max by (database) (howdah_pool_max_wait_seconds) > 1` |
| a pool is full | `sum by (database, user, standby) (howdah_pool_servers{state=\"active\"}) >= on (database) group_left howdah_database_pool_size` |
| no primary | `max by (databases) (howdah_node_role{role=\"primary\"}) == 0` |
| a host is out | `howdah_node_up == 0` |
| servers are kept for session state | `howdah_pool_servers_pinned > 0`, and `howdah_pins` says why |
| few reads leave the primary | `sum by (reason) (rate(howdah_routes_total{to=\"primary\"}[5m]))` |
| descriptors run out | `process_open_fds / process_max_fds > 0.8` |

## All of them

";
