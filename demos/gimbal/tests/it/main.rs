//! The gimbal as a program: set points, parameters, recordings, output.

mod live;

mod recording;
mod setpoints;
mod spi;
mod standard_output;
mod tuning;
