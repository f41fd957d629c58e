//! One seed from beginning to end: chaos, calm, and the proof that the pool has its full size again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::client::Stage;
use crate::plan::Weather;
use crate::plant::Plant;
use crate::world::World;

/// The most events of one seed.
const EVENTS_MAX: u64 = 400_000;

/// What one seed came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How many events there were.
    pub events: u64,
    /// What was wrong, if anything was.
    pub fault: Option<String>,
}

/// Runs one seed; misfortunes end after so many events.
pub fn run(seed: u64, steps: u64, plant: Plant, verbose: bool) -> Verdict {
    let mut events = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed, plant, verbose);
        let mut run = Run { world: &mut world, events: &mut events };
        run.chaos(steps);
        run.calm();
        run.full_size();
        world.fault
    }));
    let fault = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Some(format!("panic: {}", text.unwrap_or_default()))
    });
    Verdict { events, fault }
}

struct Run<'a> {
    world: &'a mut World,
    events: &'a mut u64,
}

impl Run<'_> {
    fn step(&mut self) -> bool {
        *self.events += 1;
        if self.world.fault.is_some() || *self.events > EVENTS_MAX {
            let events = *self.events;
            self.world.claim(events <= EVENTS_MAX, || format!("still busy after {events} events"));
            return false;
        }
        let Some(event) = self.world.net.next() else { return false };
        self.world.happen(event);
        true
    }

    fn chaos(&mut self, steps: u64) {
        while *self.events < steps && self.step() {
            if self.events.is_multiple_of(32)
                && self.world.clients.iter().all(|client| client.stage == Stage::Over)
            {
                return;
            }
        }
    }

    /// Misfortunes end; who is there finishes and leaves.
    fn calm(&mut self) {
        self.world.is_rough = false;
        self.world.weather = Weather::Fair;
        self.world.resume();
        for client in &mut self.world.clients {
            client.left = client.left.min(2);
        }
        self.rest();
        if self.world.fault.is_none() {
            self.world.check_quiet();
        }
    }

    fn rest(&mut self) {
        let until = self.world.net.now + Duration::from_secs(60);
        while !self.world.is_quiet() && self.world.fault.is_none() {
            for _ in 0..32 {
                if !self.step() {
                    break;
                }
            }
            if self.world.net.now > until {
                return self.world.complain_of_unrest();
            }
        }
    }

    /// As many clients as each pool has places all have a server at once.
    fn full_size(&mut self) {
        // Until every pause after a failure is over.
        let until = self.world.net.now + Duration::from_secs(2);
        while self.world.net.now < until && self.step() {}
        for home in 0..self.world.homes.len() {
            if self.world.fault.is_some() {
                return;
            }
            let size = self.world.homes[home].limits.size;
            let size = self.world.plan.database_max.map_or(size, |most| most.min(size));
            let mut policy = (*self.world.homes[home].policy).clone();
            (policy.query_timeout, policy.transaction_timeout) = (Duration::ZERO, Duration::ZERO);
            (policy.client_idle_timeout, policy.idle_transaction_timeout) = (Duration::ZERO, Duration::ZERO);
            self.world.homes[home].policy = policy.into();
            self.world.homes[home].query_wait = Duration::ZERO;
            for _ in 0..size {
                let client = self.world.add_client(home, 0);
                let fresh = &mut self.world.clients[client as usize];
                fresh.excused = false;
                let mut query = Vec::new();
                let text = format!("SELECT SLEEP c{}.1 3000000", fresh.id);
                wire::encode::query(&mut query, text.as_bytes());
                fresh.say(&mut self.world.net, &query);
            }
            let until = self.world.net.now + Duration::from_millis(2_500);
            while self.world.net.now < until && self.step() {}
            let busy = self.world.moored.iter().zip(&self.world.backends);
            let busy = busy
                .filter(|(moored, backend)| moored.home == home && backend.alive && backend.pg.is_running())
                .count() as u32;
            self.world
                .claim(busy == size, || format!("pool {home} has {busy} servers at work, {size} should be"));
            self.rest();
            if self.world.fault.is_none() {
                self.world.check_quiet();
            }
        }
    }
}
