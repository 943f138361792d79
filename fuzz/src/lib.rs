//! Random apps, and the properties that each of them must have.
//!
//! [`generate`] writes the source of apps: tasks of every kind, resources, nested locks, `idle` and
//! hooks. It determines everything that the compiler must know. A [`script`] determines in each run
//! what the bodies do at their [points](job::Job::point): spawn, cancel, wake, sleep, panic, shut
//! down. So a few compiled apps cover many behaviors.
//!
//! Each run is a separate process ([`child`]). Its [`ledger`] is in memory that it shares with its
//! parent, so it survives a process that is killed while jobs run. [`watch`] contains the checks
//! during the run, `verdict` and [`runner`] those at its end.

pub mod app;
pub mod child;
mod foreign;
pub mod generate;
pub mod job;
pub mod ledger;
pub mod random;
pub mod runner;
pub mod script;
mod timers;
pub mod token;
mod verdict;
pub mod wakers;
pub mod watch;
