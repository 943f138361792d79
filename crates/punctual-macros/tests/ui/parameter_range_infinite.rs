use punctual_bridge::Parameters;

#[derive(Clone, Copy, Parameters)]
struct Gains {
    #[parameter(default = 1.0, range = 0.0..=f64::INFINITY)]
    kp: f64,
}

fn main() {}
