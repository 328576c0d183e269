//! The program of the Plan page's details.

fn main() {
    trainplan_web::details();
}
