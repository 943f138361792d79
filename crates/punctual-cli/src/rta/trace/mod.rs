//! `punctual rta --trace`: bounds of the threads of a recording.

pub(crate) mod actors;
mod combine;
pub(crate) mod infer;
mod json;
pub(crate) mod observe;
pub(crate) mod read;
mod text;

pub(super) use self::combine::add;
pub(super) use self::infer::run;

#[cfg(test)]
mod tests;
