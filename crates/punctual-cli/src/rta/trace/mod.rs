//! `punctual rta --trace`: bounds of the threads of a recording.

mod actors;
mod combine;
mod infer;
mod json;
mod observe;
mod read;
mod text;

pub(super) use self::combine::add;
pub(super) use self::infer::run;

#[cfg(test)]
mod tests;
