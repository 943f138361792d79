//! Invalid default values and ranges of parameters.

mod parameter_default_nan {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = f64::NAN, range = 0.0..=10.0)]
        kp: f64,
    }
}

mod parameter_default_out_of_range {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 12.0, range = 0.0..=10.0)]
        kp: f64,
    }
}

mod parameter_range_infinite {
    use punctual_bridge::Parameters;

    #[derive(Clone, Copy, Parameters)]
    struct Gains {
        #[parameter(default = 1.0, range = 0.0..=f64::INFINITY)]
        kp: f64,
    }
}

fn main() {}
