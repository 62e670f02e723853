"""ablate"""
