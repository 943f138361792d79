use punctual_bridge::Parameters;

#[derive(Clone, Copy, Parameters)]
struct Gains {
    kp: f64,
    #[parameter(default = 1.0)]
    ki: f64,
    #[parameter(default = 1.0, range = 0.0..10.0)]
    kd: f64,
}

fn main() {}
