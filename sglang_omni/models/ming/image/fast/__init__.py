"""A fast evaluation of the diffusion transformer; diffusers' class is its plain reference."""
