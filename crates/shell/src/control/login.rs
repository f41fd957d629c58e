//! What a login waits for: lookups, verifiers and slow checks.

use std::sync::Arc;

use hub::{Derivation, Looked, Lookup};
use tokio::task::spawn_blocking;

use super::Control;
use crate::claim::Claim;
use crate::home::{ClientRef, ServerRef};
use crate::session::{Letter, Session};
use crate::shared::Identified;
use client::login::{Challenge, PasswordCheck};

impl Control {
    /// Runs an auth_query and lets the hub go on with the answer.
    pub(super) async fn look_up(
        self: Arc<Self>,
        session: Arc<Session>,
        claim: Claim,
        lookup: Lookup<ClientRef, ServerRef>,
    ) {
        let looked = self.ask(&lookup).await;
        let now = self.shared.clock.now();
        let plan = self.shared.hub.lock().looked_up(now, &claim.facts(), looked);
        let is_tls = claim.is_tls();
        if let Identified::Now(challenge) = self.shared.challenge(&session, is_tls, || claim, plan.challenge)
        {
            self.shared.post(&session, Letter::Challenge(challenge));
        }
    }

    async fn ask(&self, lookup: &Lookup<ClientRef, ServerRef>) -> Looked {
        // The connection counts as a server of its pool only while its order is made: it is one for all lookups.
        let order = self.shared.hub.lock().lookup_order(self.shared.clock.now(), &lookup.cell);
        let Some(order) = order else { return Looked::Failed };
        let limit = self.shared.settings().general.client_login_timeout;
        let order = self.lookup_order(&order, &lookup.query);
        match self.lookups.find(&order, &lookup.query, &lookup.user, limit).await {
            Ok(None) => Looked::Nobody,
            Ok(Some(found)) => Looked::Found(found.secret),
            Err(failure) => {
                tracing::warn!("{:?}: {failure}", lookup.cell);
                Looked::Failed
            }
        }
    }

    /// Makes a verifier of a clear-text password.
    pub(super) async fn derive(self: Arc<Self>, session: Arc<Session>, claim: Claim, derivation: Derivation) {
        // The semaphore is never closed, so this only waits.
        let _turn = self.hashes.acquire().await;
        let work = spawn_blocking(move || {
            let verifier = derivation.run();
            (derivation, verifier)
        });
        let Ok((derivation, verifier)) = work.await else { return };
        let credential = self.shared.hub.lock().derived(&derivation, verifier);
        let exchange = self.shared.scram(claim.is_tls(), credential);
        self.shared.post(&session, Letter::Challenge(Challenge::Scram(exchange)));
    }

    /// Compares a password with a SCRAM verifier.
    pub(super) async fn check_password(self: Arc<Self>, session: Arc<Session>, check: PasswordCheck) {
        let _turn = self.hashes.acquire().await;
        if let Ok(checked) = spawn_blocking(move || check.run()).await {
            self.shared.post(&session, Letter::Checked(checked));
        }
    }
}
