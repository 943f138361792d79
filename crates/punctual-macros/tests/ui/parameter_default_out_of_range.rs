use punctual_bridge::Parameters;

#[derive(Clone, Copy, Parameters)]
struct Gains {
    #[parameter(default = 12.0, range = 0.0..=10.0)]
    kp: f64,
}

fn main() {}
