//! Cancel requests to servers. Decides how many are under way at a time and for how long each; does not know
//! which query one is for, nor whether it still runs.

use std::sync::Arc;
use std::time::Duration;

use settings::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

use crate::connect::{ConnectError, Deadline, Endpoint, Stage, negotiate, reach_again};
use crate::sockopt::TcpOptions;
use crate::tls::ServerTls;

/// Which session to cancel, and where.
#[derive(Clone, Debug)]
pub struct CancelOrder {
    /// Where the session's own connection goes: the same address, not only the same name.
    pub remote: Endpoint,
    /// The name that TLS is checked by.
    pub host: Host,
    /// As for the session's own connection.
    pub tls: ServerTls,
    /// As for the session's own connection.
    pub tcp: TcpOptions,
    /// From the session's login.
    pub process_id: u32,
    /// From the session's login.
    pub key: Box<[u8]>,
}

/// Sends cancel requests.
#[derive(Clone)]
pub struct CancelSender {
    permits: Arc<Semaphore>,
    limit: Duration,
}

impl CancelSender {
    /// At most `count_max` at a time, each for `limit` at most, its wait for the others included.
    pub fn new(count_max: usize, limit: Duration) -> CancelSender {
        CancelSender { permits: Arc::new(Semaphore::new(count_max.max(1))), limit }
    }

    /// Sends the request and waits until the server has closed: then the signal has been sent, and what the
    /// session runs afterwards is safe from it. After an error that is not known.
    pub async fn send(&self, order: &CancelOrder) -> Result<(), ConnectError> {
        let deadline = Deadline::after(self.limit);
        let work = async {
            // The semaphore is never closed, so this only waits.
            let _permit = self.permits.acquire().await;
            // Permits are passed on when deadlines strike: those of whoever is next may have struck, too.
            if deadline.is_over() {
                return Err(ConnectError::Timeout(Stage::Cancel));
            }
            cancel(order).await
        };
        deadline.within(Stage::Cancel, work).await
    }
}

async fn cancel(order: &CancelOrder) -> Result<(), ConnectError> {
    let io = |error| ConnectError::Io(Stage::Cancel, error);
    let reached = reach_again(&order.remote, &order.tcp).await?;
    let mut stream = negotiate(reached.stream, &order.host, &order.remote, &order.tls).await?;
    let mut request = Vec::new();
    wire::encode::cancel_request(&mut request, order.process_id, &order.key);
    stream.write_all(&request).await.map_err(io)?;
    stream.flush().await.map_err(io)?;
    // A server says nothing more; what says much is none.
    let mut answer = [0; 512];
    for _ in 0..ANSWER_READS_MAX {
        match stream.read(&mut answer).await {
            // However it closes, with or without a TLS farewell, it has done its work.
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
    Err(ConnectError::BytesAfterLogin)
}

const ANSWER_READS_MAX: usize = 16;
