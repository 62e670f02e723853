"""patch"""
