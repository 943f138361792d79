//! `punctual rta --trace`: bounds of the threads of a recording.

mod actors;
mod infer;
mod json;
mod observe;
mod read;
mod text;

pub(super) use self::infer::run;

#[cfg(test)]
mod tests;
